"""What a source calls, and what each call is in the other framework; nothing is executed.

kinds, walk      what every expression is, what every call calls
judge            a call against the map: which way holds for these arguments
conventions      what is no computation: parameters(), train(), seeds, devices
page, writing    the call written anew where it stands
report           a project's totals
"""
