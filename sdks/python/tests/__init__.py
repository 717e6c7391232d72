"""Run from ``sdks/python``: ``PYTHONPATH=src python3 -m unittest``.

Nothing but the standard library is needed.
"""
