"""The embedded broker over real sockets, in rooms like those of `src/groupkeeper/broker`; raw requests and what is
answered. Coordinators without a broker are under `unit/coordinator` and `scenarios`, real client libraries under
`conformance/broker`.
"""
