"""The simulation: a world of plain numbers goes in, a trace comes out."""
