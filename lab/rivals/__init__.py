"""All methods of evomeans beside each other, at equal CPU time."""
