"""The package as it is published: installed, typed, and its documentation as a site."""
