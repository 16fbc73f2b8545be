"""The pure core of Oikos: standard library only, no I/O, no clock, no asyncio.

Time and identifiers come in as arguments; everything impure lives in `oikos.adapters`.
"""
