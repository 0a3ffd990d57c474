"""The library of instances: best known values, solutions and proofs that anyone can check."""
