"""Coordinators as pure functions: state, request, result. Long random histories are under `simulation`, conversations
under `scenarios`.
"""
