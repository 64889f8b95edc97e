"""The registry of controllers, and sources of new ones."""
