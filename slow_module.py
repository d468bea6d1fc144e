import __main__
__main__.in_module()
