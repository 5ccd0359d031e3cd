"""Tables on Delta Lake, Iceberg and S3. `make lake` installs what they need; tables in files are under `spark`."""
