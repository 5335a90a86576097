"""What a developer of a client asks: how does a collector read these bytes, and do reports follow their channel?"""
