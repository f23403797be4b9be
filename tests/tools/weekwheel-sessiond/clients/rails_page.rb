# The settings of Rails that a page shows, in page.rb, on Rails's own middleware: see test_sessiond_clients.py.
require 'active_support'
require 'active_support/core_ext'
require 'action_dispatch'
require 'rack/mock'

$stdout.sync = true

# The test does what a line asks for, and answers with a line.
def ask(line)
  puts line
  same($stdin.gets, "done\n")
end

def same(got, expected)
  raise "#{got.inspect}, not #{expected.inspect}" unless got == expected
end

# Rails makes the middleware of the settings in the same way.
class Config
  attr_reader :store, :options

  def session_store(kind, **options)
    require 'redis-actionpack' if kind == :redis_store
    @store = ActionDispatch::Session.const_get(kind.to_s.camelize)
    @options = options
  end
end

config = Config.new
eval(File.read('page.rb'), binding, 'page.rb')

site = lambda do |env|
  session = ActionDispatch::Request.new(env).session
  session[:visits] = (session[:visits] || 0) + 1
  [200, {}, ["visit #{session[:visits]}"]]
end
$page = Rack::MockRequest.new(ActionDispatch::Cookies.new(config.store.new(site, config.options)))
$cookie = nil

def visit
  answer = $page.get('http://localhost/', 'HTTP_COOKIE' => $cookie.to_s)
  $cookie = answer['Set-Cookie'][/\A[^;]+/] if answer['Set-Cookie']
  answer.body
end

same(visit, 'visit 1')
ask('advance 1799')
same(visit, 'visit 2')
ask('restart')
ask('advance 1799')
same(visit, 'visit 3')
same($cookie[/\A\w+/], config.options[:key])
ask('advance 1800')
same(visit, 'visit 1')
puts 'told'
