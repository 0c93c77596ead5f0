"""What leaves the curator: the release as a value, its card, its files and its saved models."""
