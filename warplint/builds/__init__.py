"""The compile probe: builds counted cold and warm, and why a module was built again."""
