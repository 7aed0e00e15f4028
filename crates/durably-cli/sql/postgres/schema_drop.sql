-- The schema that was set before: a name cannot be a parameter here.
do $$ begin
    execute format('drop schema if exists %I cascade', current_setting('search_path'));
end $$
