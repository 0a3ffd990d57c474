"""Searches, paths and proofs while they run, shown to a person."""
