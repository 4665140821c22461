"""The HTTP side: health, status, metrics; later the management API and the page."""
