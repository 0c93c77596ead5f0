"""Scripts that run one peer each, inside that peer's own environment: see `peers.py`."""
