"""The fleet: how commands reach machines (local, SSH, pct, docker), and what is proven about them afterwards.

`FleetRunner` is the Runner; only `oikos.bootstrap` builds one. `enroll` serves `oikos fleet add` and `trust`.
"""
