"""Datalog that stays current."""
