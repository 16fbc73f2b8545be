"""What Oikos does: the loop of a turn, the tools, the operator's intents, over the ports."""
