"""Pictures: functions of data that draw on the Axes they are given and return it, one file per picture.

None of them shows a window, touches pyplot or keeps state; without an Axes they make a figure of their
own, which :func:`rooflinekit.plot.style.save` writes. Each file has the function that computes what is
drawn beside the one that draws it. matplotlib is imported when something is drawn.
"""
