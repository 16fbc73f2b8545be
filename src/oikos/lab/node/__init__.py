"""The commands of a lab's Proxmox VE stand-in: `pct` over real LXC, and what an agent looks at beside it.

This package runs inside the node, on Debian's own Python with the standard library alone: it is copied there file by
file and imports nothing of Oikos but itself. Messages and exit codes are those of a real node (PVE 8).
"""
