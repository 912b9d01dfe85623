"""What an editor shows, one module each."""
