"""P4Runtime as clients see it: the software switch answers as bmv2 does."""
