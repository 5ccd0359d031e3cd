"""The client with a scripted broker over TCP; each test ends without tasks and sockets. Real brokers are under
`conformance/client`.
"""
