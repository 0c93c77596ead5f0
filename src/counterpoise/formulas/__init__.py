"""Formulas and questions: what a model is made of, read from a text in which nothing is run."""
