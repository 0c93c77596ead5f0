"""How a release is made: plan, shares, stages, working folder, progress, dry run."""
