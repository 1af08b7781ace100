-- include: lib.lua
-- Failed logins of a name (existing or not) and of a known device (auth.md 8).
-- Input: name (hashed), device (id, or absent when the device is unknown).
local DEVICE_FAILURES = 10
local FORGET_S = 86400
local name_key = P .. 'lock:name:' .. input.name
local device_key = input.device and (P .. 'lock:dev:' .. input.device)
