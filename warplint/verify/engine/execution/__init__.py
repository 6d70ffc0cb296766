"""An execution as data: memories, views of them, operations in their order, and the bytes that each of them touched."""
