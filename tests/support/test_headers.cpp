// Empty: the target test_headers exists for its precompiled headers.
