"""The leaves that touch the world; each wraps one library and knows no other adapter."""
