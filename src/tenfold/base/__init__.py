"""What every layer may use: dtypes, devices, errors, the user's source lines. Imports nothing above it."""
