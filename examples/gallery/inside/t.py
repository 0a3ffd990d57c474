"""
Test
====

OK.
"""
print(1)
