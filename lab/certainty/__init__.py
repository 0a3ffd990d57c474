"""How often searches are right, on problems that were not used to find out."""
