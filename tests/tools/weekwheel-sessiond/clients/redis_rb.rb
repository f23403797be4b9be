# A site's sessions by redis-rb.
require 'redis'

PORT = Integer(ARGV[0])
$stdout.sync = true

# The test does what a line asks for, and answers with a line.
def ask(line)
  puts line
  same($stdin.gets, "done\n")
end

def same(got, expected)
  raise "#{got.inspect}, not #{expected.inspect}" unless got == expected
end

client = Redis.new(port: PORT, db: 2, reconnect_attempts: 5, reconnect_delay: 0.02)

# Log in, touch, change.
same(client.set('sess:1', 'cart', ex: 1800, nx: true), true)
same(client.set('sess:1', 'other', ex: 1800, nx: true), false)
ask('advance 1000')
same(client.ttl('sess:1'), 800)
same(client.expire('sess:1', 1800), true)
same(client.getex('sess:1', px: 1_700_000), 'cart')
same(client.set('sess:1', 'cart, book', keepttl: true, get: true), 'cart')
same([client.pttl('sess:1'), client.get('sess:1')], [1_700_000, 'cart, book'])
same(client.multi { |all| all.incr('n'); all.incr('n'); all.expire('n', 50) }, [1, 2, true])
same(client.pipelined { |all| all.ttl('n'); all.get('n') }, [50, '2'])
same(client.watch('n') { Redis.new(port: PORT, db: 2).set('n', 7); client.multi { |all| all.get('n') } }, nil)
same(client.mset('a', '1', 'b', '2'), 'OK')
same(client.mapped_mget('a', 'b', 'c'), 'a' => '1', 'b' => '2', 'c' => nil)
same(client.scan_each(match: '[ab]', count: 1).sort, %w[a b])

# The server starts again, and the client comes back by itself.
ask('restart')
same(client.get('sess:1'), 'cart, book')

# It ends, which a channel tells.
same(client.config(:set, 'notify-keyspace-events', 'Ex'), 'OK')
same(client.expire('sess:1', 1800), true)
ready = Queue.new
told = Queue.new
listener = Thread.new do
  Redis.new(port: PORT).subscribe('__keyevent@2__:expired') do |on|
    on.subscribe { ready << true }
    on.message do |channel, key|
      told << [channel, key]
      Thread.exit
    end
  end
end
listener.abort_on_exception = true
ready.pop
ask('advance 1799')
same(client.exists('sess:1'), 1)
ask('advance 1')
same(client.get('sess:1'), nil)
same(told.pop, ['__keyevent@2__:expired', 'sess:1'])

same((client.hget('a', 'b') rescue $!.message.include?('hget')), true)
same(client.flushdb, 'OK')
same(client.dbsize, 0)
client.quit
puts 'told'
