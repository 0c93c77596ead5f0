"""What an analyst does with a release: estimates, models and resampling that use its weights."""
