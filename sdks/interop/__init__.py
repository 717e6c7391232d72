"""Our Python library and the public libraries of Standard Webhooks for Python and JavaScript, in
both directions.

Run by ``scripts/sdks`` from ``sdks``, with the packages installed: ``python -m unittest interop``.
"""
