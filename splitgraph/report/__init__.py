"""Results as a person reads them (pages of lines and tables) and as a program reads them (JSON documents)."""
