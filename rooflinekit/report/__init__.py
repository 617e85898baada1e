"""Results as text for a terminal: each function takes a result and returns something rich can print."""
