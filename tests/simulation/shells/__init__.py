"""The real broker without sockets on virtual time: failing disks, crashes, clocks that step. Coordinators without a
broker are in the other rooms.
"""
