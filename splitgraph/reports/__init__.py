"""Results for people (pages of lines and tables) and for programs (JSON documents)."""
