"""The network's side of collective calls: matches what ranks ask for, and carries it out."""
