"""Key stores and JAAS files of all forms. Logins with them are under `unit/client/security` and `broker/security`."""
