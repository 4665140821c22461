"""The HTTP side: health, status, metrics, the management API; later the page."""
