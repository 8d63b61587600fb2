"""The data plane: one P4_16 v1model program and its committed p4c output.

`p4src.artefacts` finds the compiled program and rebuilds it; `p4src.constants` carries the numbers
of the program (sizes, kinds, flags, outcomes) into Python.
"""
