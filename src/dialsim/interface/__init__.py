"""Nouns of the service that every layer shares: statuses, requests and their checks, error
texts.
"""
