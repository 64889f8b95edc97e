"""Score candidates for controllers, for programs that write them."""
