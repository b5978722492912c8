"""The tools of ``backout.tools`` for agent frameworks, one module each. Nothing is imported until you ask for it."""
