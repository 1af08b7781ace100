-- Generic cell rate algorithm on one key: the key holds the theoretical arrival time in microseconds.
-- Times are those of Redis, so that all processes agree.
local function now_us()
  local t = redis.call('TIME')
  return tonumber(t[1]) * 1000000 + tonumber(t[2])
end

-- Milliseconds to wait until one more is allowed; 0 when it is now. Changes nothing.
local function gcra_wait(key, interval, burst, now)
  local tat = tonumber(redis.call('GET', key) or '0')
  if tat < now then tat = now end
  local early = tat + interval - interval * burst - now
  if early <= 0 then return 0 end
  return math.ceil(early / 1000)
end

local function gcra_take(key, interval, now)
  local tat = tonumber(redis.call('GET', key) or '0')
  if tat < now then tat = now end
  tat = tat + interval
  redis.call('SET', key, string.format('%.0f', tat), 'PX', math.ceil((tat - now) / 1000))
end
