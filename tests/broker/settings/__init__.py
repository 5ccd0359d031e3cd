"""Settings that clients read and change while the broker runs. How a settings file is read is under `unit/broker`."""
