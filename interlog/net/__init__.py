"""The event loop lives here and nowhere else: listeners, the driver, threads."""
